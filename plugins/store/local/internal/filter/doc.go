// Package filter finds the rows that a filter selects, by the inverted lists of labels
// and metadata, and keeps what was asked lately. It costs about what it selects.
package filter
