// Package lines splits a stream at line ends in bounded memory. It exists because
// bufio.Scanner gives up at a line that is too long, and a row that is too long fails alone.
//
// It does not know what lines hold.
package lines
