// Package sample is the built-in voters: language models, and voters that count on the knowledge alone.
package sample
