// Package elect holds the built-in elections. Each turns the samples of an item into one verdict. Before that, the
// accept rules of the file decide which answers are acceptable.
package elect
