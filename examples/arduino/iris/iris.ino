// Names irises. Send lines of four numbers over the serial port, in cm: length and width of the sepal, then of the petal.
// A line has up to 63 characters.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "iris.h"

void setup() {
  Serial.begin(115200);
  Serial.setTimeout(10000);
}

void loop() {
  if (Serial.available() == 0) {
    return;
  }
  char line[64];
  line[Serial.readBytesUntil('\n', line, sizeof(line) - 1)] = '\0';
  iris_value row[IRIS_N_FEATURES];
  char *rest = line;
  for (iris_index i = 0; i < IRIS_N_FEATURES; ++i) {
    char *const from = rest + strspn(rest, " ,;\t");
    row[i] = (iris_value)strtod(from, &rest);
    if (rest == from) {
      row[i] = NAN;  // no number is left in the line: 0 would be a flower of its own
    }
  }
  const int16_t found = iris_predict(row);
  if (found < 0) {
    Serial.println("a value is missing");
  } else {
    Serial.println(iris_class_names[found]);
  }
}
