package fewshot

import (
	"fmt"
	"sort"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// charactersPerToken is what English text has, about, with the tokenizers of
// today's models. Other languages have fewer characters to a token.
const charactersPerToken = 4

// Tokens estimates how many tokens a text is.
func Tokens(text string) int {
	return (utf8.RuneCountInString(text) + charactersPerToken - 1) / charactersPerToken
}

// Fit finds the prompt with the most examples, of at most all of them, that is
// within a budget of tokens; a budget of 0 has no bound. Write writes the
// prompt with so many examples and says how many tokens it is; more examples
// must not make it shorter. An item whose prompt is too long without a single
// one fails.
func Fit(examples, budget int, write func(examples int) (sdk.Prompt, int, error)) (sdk.Prompt, error) {
	prompt, tokens, err := write(examples)
	if err != nil || budget == 0 || tokens <= budget {
		return prompt, err
	}
	// How many have to go, found in a few steps: a prompt may have hundreds.
	dropped := 1 + sort.Search(examples, func(i int) bool {
		prompt, tokens, err = write(examples - 1 - i)
		return err != nil || tokens <= budget
	})
	if dropped > examples {
		_, tokens, err = write(0)
		if err != nil {
			return sdk.Prompt{}, err
		}
		return sdk.Prompt{}, sdk.Invalid(fmt.Errorf("the prompt is about %d tokens long without any example, max_tokens is %d; "+
			"raise it, or list fewer labels", tokens, budget))
	}
	prompt, _, err = write(examples - dropped)
	return prompt, err
}
