// Names irises. Send lines of four numbers over the serial port, in cm: length and width of the sepal, then of the petal.
#include "iris.h"

void setup() {
  Serial.begin(115200);
  Serial.setTimeout(10000);
}

void loop() {
  if (Serial.available() == 0) {
    return;
  }
  iris_value row[IRIS_N_FEATURES];
  for (iris_index i = 0; i < IRIS_N_FEATURES; ++i) {
    row[i] = Serial.parseFloat();
  }
  while (Serial.available() > 0 && Serial.read() != '\n') {
    // what is left of the line
  }
  const int16_t found = iris_predict(row);
  if (found < 0) {
    Serial.println("a value is missing");
  } else {
    Serial.println(iris_class_names[found]);
  }
}
