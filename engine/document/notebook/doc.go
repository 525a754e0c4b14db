// Package notebook makes Markdown of Jupyter notebooks (nbformat 3 and 4): Markdown cells as they
// are, code cells as fenced code, and of their outputs the text, up to a bound per cell. Pictures,
// HTML, JSON and other data of outputs are left out, and so is metadata, apart from the language
// of the code. An error of a cell is its name and value, without the traceback.
//
// It runs nothing.
package notebook
