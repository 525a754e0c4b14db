package sample

import (
	"context"
	"math"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/ballot"
)

// This file is a voter: it votes for the labels with the nearest centroids.
//
// The weight of a label is softmax(sharpness * cosine) over all labels of the knowledge. The cosine is between the
// item's vector and the mean of the label's vectors. This is the nearest-centroid rule (Rocchio, 1971; Tibshirani et
// al., "Diagnosis of multiple cancer types by shrunken centroids", 2002), read as probabilities as in Snell et al.,
// "Prototypical Networks for Few-shot Learning", 2017. The default sharpness, 20, serves CLINC150, HWU64 and DBpedia
// classes alike.
//
// Where labels are sets, the weight of a label is 1 / (1 + exp(sharpness * (m - cosine))), where m is half way from
// the mean cosine to the greatest. So it does not depend on how many other labels are near.
//
// The voter does not compute centroids: the engine keeps them in the store, and sends their labels and cosines.

type prototypeConfig struct {
	Sharpness float64 `config:"sharpness" default:"20" above:"0" max:"1000" doc:"How much more a nearer centroid counts: votes weigh exp(sharpness * cosine)."`
}

// Prototype describes the voter.
func Prototype() sdk.Stage {
	return sdk.SampleStage("prototype", "Votes for the labels whose centroids lie nearest, over the whole knowledge.",
		openPrototype, sdk.Revision("1"), sdk.Reads(sdk.ColumnPrototypes))
}

func openPrototype(_ context.Context, setup sdk.Setup, c prototypeConfig) (sdk.Sampler, error) {
	return prototypeVoter{c, setup.Labels.Many}, nil
}

type prototypeVoter struct {
	prototypeConfig
	sets bool
}

func (v prototypeVoter) Sample(_ context.Context, b sdk.Batch) ([][]sdk.Sample, error) {
	samples := make([][]sdk.Sample, len(b.Items))
	for i, item := range b.Items {
		if answers := v.vote(item.Prototypes); len(answers) > 0 {
			samples[i] = []sdk.Sample{{Answers: answers}}
		}
	}
	return samples, nil
}

func (v prototypeVoter) vote(prototypes []sdk.Candidate) []sdk.Answer {
	labels, cosines := make([]string, 0, len(prototypes)), make([]float32, 0, len(prototypes))
	for _, p := range prototypes {
		if !math.IsNaN(float64(p.Dense)) { // sdk.Unscored
			labels, cosines = append(labels, p.Label), append(cosines, p.Dense)
		}
	}
	if v.sets {
		return v.set(labels, cosines)
	}
	var votes ballot.Tally
	votes.Grow(len(labels)) // a label has one centroid
	for i, weight := range ballot.Softmax(cosines, v.Sharpness) {
		if weight >= least {
			votes.Add(labels[i], weight)
		}
	}
	return votes.Shares()
}

// set returns the labels with the weights for label sets. Prototypes come nearest first, and so do the labels.
func (v prototypeVoter) set(labels []string, cosines []float32) []sdk.Answer {
	var answers []sdk.Answer
	sum := float32(0)
	for _, c := range cosines {
		sum += c
	}
	if len(cosines) == 0 {
		return nil
	}
	middle := (cosines[0] + sum/float32(len(cosines))) / 2
	for i, c := range cosines {
		if weight := sigmoid(float32(v.Sharpness) * (c - middle)); weight >= least {
			answers = append(answers, sdk.Answer{Label: labels[i], Weight: weight})
		}
	}
	return answers
}
