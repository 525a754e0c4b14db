package wire

import (
	"fmt"
	"math"

	"github.com/racflow/racflow/sdk"
)

// The bounds of the numbers that a stage may return. They are far beyond what
// means anything, and so far below what a type holds that sums stay finite.
const (
	// MaxWeight bounds the weight of an answer: a product of two such weights,
	// added up over as many answers as memory holds, stays below the largest
	// float64, 1.8e308.
	MaxWeight = 1e100
	// MaxScore bounds a score either side of 0: a hundred million of them add up
	// in a float32, whose largest is 3.4e38.
	MaxScore = 1e30
	// NormTolerance is how far the norm of a vector may be from 1: what is
	// computed with half the precision of a float32 passes, what is not
	// normalised does not.
	NormTolerance = 1e-3
	// shareTolerance is how far rounding may take a share out of 0 to 1.
	shareTolerance = 1e-9
)

// The Check functions below look at what a stage has returned for one row. Their
// errors say the value and its place, from 1, and nothing that a plugin wrote: no
// secret is in them. The comparisons are written so that they are false for NaN.

// CheckVector wants a vector of norm 1, or one that is all zero.
func CheckVector(v []float32) error {
	square := squareOf(v)
	if square == 0 || math.Abs(square-1) <= 2*NormTolerance {
		return nil
	}
	if err := checkFinite(v); err != nil {
		return err
	}
	return fmt.Errorf("a vector of norm %.6g; a vector has norm 1, or is all zero where a text has nothing to embed", math.Sqrt(square))
}

// CheckDirection wants a vector of any norm.
func CheckDirection(v []float32) error {
	if square := squareOf(v); square <= math.MaxFloat64 {
		return nil
	}
	return checkFinite(v)
}

// squareOf is finite where all of v is.
func squareOf(v []float32) (square float64) {
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	return square
}

func checkFinite(v []float32) error {
	for i, x := range v {
		if !(math.Abs(float64(x)) <= math.MaxFloat32) {
			return fmt.Errorf("a vector with %v at position %d; its numbers are finite", x, i+1)
		}
	}
	return nil
}

// CheckCandidates wants scores within MaxScore; a side may leave a candidate
// unscored.
func CheckCandidates(list []sdk.Candidate) error {
	for i := range list {
		c := &list[i]
		switch {
		case !isScore(c.Score):
			return scoreError("score", c.Score, i)
		case c.Dense == c.Dense && !isScore(c.Dense):
			return scoreError("dense score", c.Dense, i)
		case c.Lexical == c.Lexical && !isScore(c.Lexical):
			return scoreError("lexical score", c.Lexical, i)
		}
	}
	return nil
}

func scoreError(what string, score float32, candidate int) error {
	return fmt.Errorf("%s %v for candidate %d; a score is a number between -%g and %g", what, score, candidate+1, MaxScore, MaxScore)
}

func isScore(x float32) bool { return x >= -MaxScore && x <= MaxScore }

// CheckRanking wants scores within MaxScore.
func CheckRanking(list []sdk.Ranked) error {
	for _, r := range list {
		if !isScore(r.Score) {
			return scoreError("score", r.Score, r.Candidate)
		}
	}
	return nil
}

// CheckSamples wants weights from 0 to MaxWeight, token counts up to sdk.MaxTokens, and
// samples, answers and texts within their bounds.
func CheckSamples(list []sdk.Sample) error {
	if err := checkAmount(list); err != nil {
		return err
	}
	for i := range list {
		for n, a := range list[i].Answers {
			if !(a.Weight >= 0 && a.Weight <= MaxWeight) {
				return fmt.Errorf("weight %v for answer %d; a weight is a number from 0 to %g", a.Weight, n+1, MaxWeight)
			}
		}
		u := list[i].Usage
		if !u.Plausible() {
			return fmt.Errorf("a count of %d tokens; a sample has at most %d", max(u.InputTokens, u.CachedTokens, u.OutputTokens), uint64(sdk.MaxTokens))
		}
	}
	return nil
}

// CheckVerdict wants an agreement and a confidence from 0 to 1, and texts within their bounds.
func CheckVerdict(v sdk.Verdict) error {
	if a := v.Agreement; !(a >= -shareTolerance && a <= 1+shareTolerance) {
		return fmt.Errorf("agreement %v; an agreement is a share from 0 to 1", a)
	}
	if c := v.Confidence; !(c >= 0 && c <= 1) {
		return fmt.Errorf("confidence %v; a confidence is a probability from 0 to 1", c)
	}
	return checkText(max(len(v.Answer), len(v.Reason)))
}
