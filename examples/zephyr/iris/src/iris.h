/* iris: Bayesian-network classifier with 5-bit integers. Written by tanlearn 0.2.0; do not edit.

   int16_t iris_predict(const iris_value *row)
       Return the class of a row of 4 raw values, as a number from 0; -1 if a value is missing or did not
       occur in training. The caller decides what to do with such a row.
   int16_t iris_encode(const iris_value *row, iris_code *codes)
       Convert the raw values of a row to codes. Return 0; or the first column without a code, counted from 1.
   int16_t iris_predict_codes(const iris_code *codes)
       Return the class of a row of codes; -1 if a code is invalid.
   int16_t iris_sums(const iris_code *codes, iris_sum *sums)
       Write the sum of magnitudes of each class. The most probable class has the smallest sum.

   Constants take 68 bytes. Arrays of a prediction take 7 bytes of the stack.

   Values of a row, in this order:
       [0] float: sepal length (cm)
       [1] float: sepal width (cm)
       [2] float: petal length (cm)
       [3] float: petal width (cm)

   On AVR, constants are stored in flash memory. For another separate memory, define these macros before you include
   this file: IRIS_ATTRIBUTE, which follows the names of arrays, and the macros that read from a pointer:
   IRIS_READ_8, IRIS_READ_FLOAT.
*/
#ifndef IRIS_H
#define IRIS_H

#include <stdint.h>
#include <float.h>

#if defined(__AVR__) && !defined(IRIS_ATTRIBUTE)
#include <avr/pgmspace.h>
#define IRIS_ATTRIBUTE PROGMEM
#define IRIS_READ_8(pointer) pgm_read_byte(pointer)
#define IRIS_READ_FLOAT(pointer) pgm_read_float(pointer)
#endif
#ifndef IRIS_ATTRIBUTE
#define IRIS_ATTRIBUTE
#endif
#ifndef IRIS_READ_8
#define IRIS_READ_8(pointer) (*(pointer))
#endif
#ifndef IRIS_READ_FLOAT
#define IRIS_READ_FLOAT(pointer) (*(pointer))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define IRIS_N_FEATURES 4u
#define IRIS_N_CLASSES 3u
typedef uint_fast8_t iris_index; /* number of a feature or class */
typedef uint8_t iris_code;
typedef uint8_t iris_sum;

/* Magnitudes of the prior, then of each feature as [value][values of parents][class]. */
typedef uint16_t iris_position;
static const uint8_t iris_cells[25] IRIS_ATTRIBUTE = {
    33, 8, 3, 53, 67, 52, 10, 21, 136, 132, 40, 196, 212, 130, 16, 128, 91, 4, 0, 16, 132, 0, 152, 52, 32,
};

/* Add a row of magnitudes, which starts at a bit position, to the sums. */
static inline void iris_add(iris_position at, iris_sum *sums)
{
    const uint8_t *next = &iris_cells[at >> 3u];
    const uint16_t mask = 31;
    uint16_t bits = IRIS_READ_8(next);
    uint8_t left = (uint8_t)(8u - (at & 7u)); /* bits not yet used */
    for (iris_index c = 0; c < IRIS_N_CLASSES; ++c) {
        if (left < 5u) {
            ++next;
            bits = (uint16_t)((bits << 8u) | IRIS_READ_8(next));
            left = (uint8_t)(left + 8u);
        }
        left = (uint8_t)(left - 5u);
        sums[c] = (iris_sum)(sums[c] + ((bits >> left) & mask));
    }
}

/* Start of each CPT, and multiples of the lengths of its rows. */
static const uint8_t iris_multiples[3] IRIS_ATTRIBUTE = {
    0, 15, 30,
};
static const uint8_t iris_offset[4] IRIS_ATTRIBUTE = {
    15, 60, 105, 150,
};

/* Write the sum of magnitudes of each class; the log joint is minus the sum times 0.25. Return 0; or -1, without
   writing, if a code is invalid. */
static inline int16_t iris_sums(const iris_code *codes, iris_sum *sums)
{
    for (iris_index i = 0; i < IRIS_N_FEATURES; ++i) {
        if (codes[i] >= 3u) {
            return -1;
        }
    }
    for (iris_index c = 0; c < IRIS_N_CLASSES; ++c) {
        sums[c] = 0;
    }
    iris_add(0, sums);
    for (iris_index i = 0; i < IRIS_N_FEATURES; ++i) {
        iris_position at = IRIS_READ_8(&iris_offset[i]);
        at = (iris_position)(at + IRIS_READ_8(&iris_multiples[0u + codes[i]]));
        iris_add(at, sums);
    }
    return 0;
}

/* Return the most probable class, the first one in case of a tie; -1 if a code is invalid. */
static inline int16_t iris_predict_codes(const iris_code *codes)
{
    iris_sum sums[IRIS_N_CLASSES];
    iris_index best = 0;
    if (iris_sums(codes, sums) != 0) {
        return -1;
    }
    iris_sum least = sums[0]; /* not sums[best], whose address AVR's compiler computes by a multiplication */
    for (iris_index c = 1; c < IRIS_N_CLASSES; ++c) {
        if (sums[c] < least) {
            least = sums[c];
            best = c;
        }
    }
    return (int16_t)best;
}

/* A value of a row. */
typedef float iris_value;
static const float iris_cuts[8] IRIS_ATTRIBUTE = {
    0x1.6333320000000p+2f, 0x1.8999980000000p+2f, 0x1.7999980000000p+1f, 0x1.accccc0000000p+1f,
    0x1.3999980000000p+1f, 0x1.3000000000000p+2f, 0x1.9999980000000p-1f, 0x1.c000000000000p+0f,
};
static const uint8_t iris_start[4] IRIS_ATTRIBUTE = {
    0, 2, 4, 6,
};

/* Write the codes of a row. Return 0; or the column, counted from 1, of a value that is missing or did not occur in
   training. Missing values: NaN (compile without -ffast-math). */
static inline int16_t iris_encode(const iris_value *row, iris_code *codes)
{
    for (iris_index i = 0; i < IRIS_N_FEATURES; ++i) {
        const iris_code n = 3u;
        iris_code code = 0;
        {
            const float number = row[i];
            const float *known = &iris_cuts[IRIS_READ_8(&iris_start[i])];
            if (!((number >= -FLT_MAX) && (number <= FLT_MAX))) {
                code = n; /* NaN or infinite */
            } else {
                while ((code + 1u < n) && (number > IRIS_READ_FLOAT(known))) {
                    ++code;
                    ++known;
                }
            }
        }
        if (code >= n) {
            return (int16_t)((int16_t)i + 1);
        }
        codes[i] = code;
    }
    return 0;
}

/* Return the most probable class of a row; -1 if a value is missing or did not occur in training. */
static inline int16_t iris_predict(const iris_value *row)
{
    iris_code codes[IRIS_N_FEATURES];
    return (iris_encode(row, codes) == 0) ? iris_predict_codes(codes) : -1;
}

/* Names of the classes, by number. */
static const char *const iris_class_names[IRIS_N_CLASSES] = {
    "setosa",
    "versicolor",
    "virginica",
};
enum {
    IRIS_CLASS_setosa = 0,
    IRIS_CLASS_versicolor = 1,
    IRIS_CLASS_virginica = 2,
};

#ifdef __cplusplus
}
#endif

#endif
