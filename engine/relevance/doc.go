// Package relevance
package relevance
