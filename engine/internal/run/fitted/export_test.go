package fitted

// Lower makes stages learn from at most the given number of rows, until restore is called.
func Lower(rows int) (restore func()) {
	before := maxRows
	maxRows = rows
	return func() { maxRows = before }
}
