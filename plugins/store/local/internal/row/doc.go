// Package row is what every other room of the store works on: an entry as the bytes of
// the files have it, sets of rows, and changes. It knows neither files nor indexes.
package row
