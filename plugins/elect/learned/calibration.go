package learned

import (
	"errors"
	"fmt"
	"math"

	"github.com/racflow/racflow/sdk"
)

// calibration makes a confidence of the probability of an answer: the log-odds times slope,
// plus offset (Platt, "Probabilistic outputs for support vector machines and comparisons
// to regularized likelihood methods", 1999).
type calibration struct {
	Slope  float64 `json:"slope"`
	Offset float64 `json:"offset"`
}

// uncalibrated leaves probabilities as they are.
var uncalibrated = calibration{Slope: 1}

// calibrationOf reads the argument.
func calibrationOf(given map[string]float64) (calibration, error) {
	c := uncalibrated
	for name, value := range given {
		switch {
		case name == "slope" && value >= 0:
			c.Slope = value
		case name == "slope":
			return c, &sdk.ArgumentError{Argument: "calibration", Err: errors.New("a slope below 0 makes the likeliest answers the least sure")}
		case name == "offset":
			c.Offset = value
		default:
			return c, &sdk.ArgumentError{Argument: "calibration", Err: fmt.Errorf("there is no %q; give slope and offset", name)}
		}
	}
	return c, nil
}

func (c calibration) confidence(probability float64) float64 {
	return sigmoid(c.Slope*logOdds(probability) + c.Offset)
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// surest bounds log-odds: no number of rows tells a probability from 1 that is closer.
const surest = 12

func logOdds(probability float64) float64 {
	return max(-surest, min(surest, math.Log(probability/(1-probability))))
}

// calibrated is fitted to decisions by Newton's method, with a penalty of half the squared
// distance from uncalibrated: a row's worth.
func (t trial) calibrated() calibration {
	c := uncalibrated
	for range steps {
		g, h := [2]float64{c.Slope - 1, c.Offset}, [3]float64{1, 0, 1}
		for _, d := range t {
			if math.IsInf(d.odds, 0) {
				continue // nothing was answered
			}
			p := sigmoid(c.Slope*d.odds + c.Offset)
			error, v := p, p*(1-p)
			if d.right {
				error--
			}
			g[0], g[1] = g[0]+error*d.odds, g[1]+error
			h[0], h[1], h[2] = h[0]+v*d.odds*d.odds, h[1]+v*d.odds, h[2]+v
		}
		det := h[0]*h[2] - h[1]*h[1]
		by := [2]float64{(h[2]*g[0] - h[1]*g[1]) / det, (h[0]*g[1] - h[1]*g[0]) / det}
		size := min(1, 1/max(math.Abs(by[0]), math.Abs(by[1]))) // far from the end, Newton's steps are too long
		c.Slope, c.Offset = max(c.Slope-size*by[0], 0), c.Offset-size*by[1]
		if math.Abs(by[0])+math.Abs(by[1]) < 1e-9 {
			break
		}
	}
	return calibration{rounded(c.Slope), rounded(c.Offset)}
}
