/* Names three irises, and prints how many cycles of the kernel's clock each took. */
#include <zephyr/kernel.h>

#include "iris.h"

static const iris_value flowers[][IRIS_N_FEATURES] = {
    {5.1f, 3.5f, 1.4f, 0.2f}, /* cm: length and width of the sepal, then of the petal */
    {6.0f, 2.9f, 4.5f, 1.5f},
    {6.3f, 3.3f, 6.0f, 2.5f},
};

int main(void)
{
    for (size_t k = 0; k < ARRAY_SIZE(flowers); ++k) {
        const uint32_t before = k_cycle_get_32();
        const int16_t found = iris_predict(flowers[k]);
        const uint32_t cycles = k_cycle_get_32() - before;
        printk("%s, %u cycles\n", (found < 0) ? "a value is missing" : iris_class_names[found], cycles);
    }
    return 0;
}
