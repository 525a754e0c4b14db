package folder

import (
	"math"

	"github.com/racflow/racflow/plugins/internal/encoder/internal/transformer"
)

// modernJSON is what config.json says of ModernBERT alone, in the words of transformers 4 and 5.
type modernJSON struct {
	HiddenActivation string          `json:"hidden_activation"`
	NormEpsilon      float64         `json:"norm_eps"`
	GlobalEvery      int             `json:"global_attn_every_n_layers"`
	LayerTypes       []string        `json:"layer_types"`
	Window           int             `json:"local_attention"`
	GlobalTheta      float64         `json:"global_rope_theta"`
	LocalTheta       float64         `json:"local_rope_theta"`
	Rope             map[string]rope `json:"rope_parameters"`
	Scaling          *rope           `json:"rope_scaling"`
}

type rope struct {
	Type  string  `json:"rope_type"`
	Theta float64 `json:"rope_theta"`
}

func modernDefaults() modernJSON {
	return modernJSON{
		HiddenActivation: "gelu", NormEpsilon: 1e-5, GlobalEvery: 3, Window: 128, GlobalTheta: 160000, LocalTheta: 10000,
	}
}

const (
	globalAttention = "full_attention"
	localAttention  = "sliding_attention"
)

// set sets what ModernBERT has of its own.
func (f modernJSON) set(dir string, s *transformer.Config) error {
	s.Epsilon, s.Window, s.GlobalTheta, s.LocalTheta = f.NormEpsilon, f.Window/2, f.GlobalTheta, f.LocalTheta
	for kind, theta := range map[string]*float64{globalAttention: &s.GlobalTheta, localAttention: &s.LocalTheta} {
		if r, ok := f.Rope[kind]; ok {
			if r.Type != "" && r.Type != "default" {
				return unsupported(dir, configFile, "rope_type is %q, only \"default\" is", r.Type)
			}
			if r.Theta != 0 {
				*theta = r.Theta
			}
		}
		if *theta <= 0 || math.IsInf(*theta, 0) {
			return unsupported(dir, configFile, "rope_theta is %v", *theta)
		}
	}
	switch {
	case f.Scaling != nil && f.Scaling.Type != "default":
		return unsupported(dir, configFile, "rope_scaling of the type %q", f.Scaling.Type)
	case s.Window < 1 || s.Window > maxPositions:
		return unsupported(dir, configFile, "local_attention is %d", f.Window)
	case f.GlobalEvery < 1 && f.LayerTypes == nil:
		return unsupported(dir, configFile, "global_attn_every_n_layers is %d", f.GlobalEvery)
	case f.LayerTypes != nil && len(f.LayerTypes) != s.Layers:
		return unsupported(dir, configFile, "layer_types are of %d layers, num_hidden_layers is %d", len(f.LayerTypes), s.Layers)
	case s.Layers < 1 || s.Layers > maxSize:
		return unsupported(dir, configFile, "num_hidden_layers is %d", s.Layers)
	}
	s.Global = make([]bool, s.Layers)
	for i := range s.Global {
		s.Global[i] = f.LayerTypes == nil && i%f.GlobalEvery == 0
	}
	for i, kind := range f.LayerTypes {
		if kind != globalAttention && kind != localAttention {
			return unsupported(dir, configFile, "layer_types: %q, only %q and %q are", kind, globalAttention, localAttention)
		}
		s.Global[i] = kind == globalAttention
	}
	return nil
}
