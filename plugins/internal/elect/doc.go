// Package elect is the built-in elections. Each makes of an item's samples one verdict. Which answers are acceptable,
// accept rules of the file decide before that.
package elect
