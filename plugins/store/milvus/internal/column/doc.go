// Package column decodes the replies of a server, which have a column for each
// field, as rows; and vectors, of 32 or 16 bits, both ways.
package column
