package run_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/racflow/racflow/engine/internal/run/runtest"
)

// A pipeline answers after hours without requests.
func TestARestOfHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := runtest.Pipeline(t, runtest.Stages(), `
			retrieve "near" { from = knowledge.k }
			sample "knn" { use = "neighbours" }
			elect "e" { use = "soft" }`)
		runtest.Want(t, runtest.Answers(t, r, "an apple"), "fruit")
		time.Sleep(5 * time.Hour)
		runtest.Want(t, runtest.Answers(t, r, "a car"), "vehicle")
	})
}
