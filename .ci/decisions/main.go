// The command asks for decisions by OpenAI's client for Go. The environment has the address of the server, and a token of it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithUnsafeAllowHTTP(), option.WithMaxRetries(0)) // OPENAI_BASE_URL and OPENAI_API_KEY
	label, other := os.Getenv("LABEL"), os.Getenv("OTHER")
	ask := func(options ...string) (*openai.Decision, error) {
		q := openai.DecisionNewParamsQuestionChoice{Instructions: openai.DecisionNewParamsQuestionChoiceInstructionsUnion{OfString: openai.String("Which intent?")}}
		for _, o := range options {
			q.Choices = append(q.Choices, openai.DecisionNewParamsQuestionChoiceChoice{Value: openai.DecisionNewParamsQuestionChoiceChoiceValueUnion{OfString: openai.String(o)}})
		}
		is := openai.DecisionNewParamsQuestionPredicate{Name: openai.String("is"), Instructions: openai.DecisionNewParamsQuestionPredicateInstructionsUnion{OfString: openai.String(label)}}
		return client.Decisions.New(context.Background(), openai.DecisionNewParams{
			Model: "intent", Input: openai.DecisionNewParamsInputUnion{OfString: openai.String(os.Getenv("TEXT"))},
			Questions: []openai.DecisionNewParamsQuestionUnion{{OfChoice: &q}, {OfPredicate: &is}},
		})
	}
	said, err := ask(other, label, "none")
	if err != nil {
		log.Fatal(err)
	}
	which, is := said.Answers[0].AsChoice(), said.Answers[1].AsPredicate()
	if which.Choice.OfString != label || len(which.Probabilities) != 3 || which.Probabilities[1].Probability != is.Probability || is.Name != "is" {
		log.Fatalf("%s", said.RawJSON())
	}
	var refused *openai.Error
	if _, err = ask(label, "mistyped"); !errors.As(err, &refused) || refused.StatusCode != 422 || refused.Param != "questions.0" {
		log.Fatalf("an option that is no label: %v", err)
	}
	if _, err = ask(label); !errors.As(err, &refused) || refused.StatusCode != 400 {
		log.Fatalf("one option: %v", err)
	}
	var asking sync.WaitGroup
	for range 64 {
		asking.Go(func() {
			if again, err := ask(other, label, "none"); err != nil || again.Answers[1].AsPredicate().Probability != is.Probability {
				log.Fatalf("%v, %v", again, err)
			}
		})
	}
	asking.Wait()
	fmt.Println("openai for Go decides alike")
}
