// Package prompt is the built-in prompters: few-shot completions, chats whose turns are shots, and questions about passages.
package prompt
