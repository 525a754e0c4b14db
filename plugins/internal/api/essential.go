package api

import (
	"reflect"
	"slices"
	"strings"
)

// Essential is a config without its neutral and its secret arguments: a request that is
// made by it says what the reply depends on, and is what the reply can be kept under.
func Essential[C any](config C) C {
	v := reflect.ValueOf(&config).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		_, flags, _ := strings.Cut(f.Tag.Get("config"), ",")
		if all := strings.Split(flags, ","); slices.Contains(all, "neutral") || slices.Contains(all, "secret") {
			v.FieldByIndex(f.Index).SetZero()
		}
	}
	return config
}
