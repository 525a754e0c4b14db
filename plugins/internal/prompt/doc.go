// Package prompt holds the built-in prompters: few-shot completions, chats with examples as turns, and questions
// about passages.
package prompt
