// Package sample holds the built-in voters: language models, and statistical voters that use only the knowledge.
package sample
