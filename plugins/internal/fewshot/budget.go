package fewshot

import (
	"fmt"
	"sort"
	"unicode/utf8"

	"github.com/racflow/racflow/sdk"
)

// Tokens estimates how many tokens a text has.
func Tokens(text string) int { return sdk.EstimateTokens(utf8.RuneCountInString(text)) }

// MessageTokens estimates how many tokens the messages of a chat have.
func MessageTokens(messages []sdk.Message) int {
	sum := 0
	for _, m := range messages {
		sum += Tokens(m.Text)
	}
	return sum
}

// Fit finds the prompt with the most of so many examples that is within a budget of
// tokens; a budget of 0 has no bound. Write writes the prompt with a number of examples
// and returns its tokens too; more examples must not make it shorter. It is an error
// when the prompt is too long without any example.
func Fit(examples, budget int, write func(examples int) (sdk.Prompt, int, error)) (sdk.Prompt, error) {
	prompt, tokens, err := write(examples)
	if err != nil || budget == 0 || tokens <= budget {
		return prompt, err
	}
	// A binary search: a prompt may have hundreds of examples.
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
