package sdk

import (
	"encoding/json"
	"fmt"
)

// CompleteConfig adds to a config the values that a stage has resolved. What the config
// gives stays. Both are JSON objects, and each may be empty.
func CompleteConfig(config, resolved []byte) ([]byte, error) {
	if len(resolved) == 0 {
		return config, nil
	}
	var values, given map[string]json.RawMessage
	if err := json.Unmarshal(resolved, &values); err != nil {
		return nil, fmt.Errorf("what a stage has resolved: %w", err)
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &given); err != nil {
			return nil, fmt.Errorf("a stage's config: %w", err)
		}
	}
	for name, value := range given {
		if string(value) != "null" {
			values[name] = value
		}
	}
	return json.Marshal(values)
}
