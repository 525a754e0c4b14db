package milvus

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// unpromised are checks of properties that the store does not guarantee.
func unpromised() []sdktest.Option {
	return []sdktest.Option{
		sdktest.Without("together/readers see one commit", "changes are made in place: readers may see them half done"),
		sdktest.Without("content/empty and long texts", "of more than 65,535 bytes of words in an entry a server gets the first: see TestManyWords"),
	}
}

// TestConformance runs the suite that every store has to pass.
func TestConformance(t *testing.T) {
	sdktest.Stage(t, Stage(), startEngine(t).json(), append(unpromised(), sdktest.Parallel())...)
}

// TestConformanceKilled runs the checks of what survives a process, and kills the server meanwhile.
func TestConformanceKilled(t *testing.T) {
	e := startEngine(t)
	options := append(unpromised(), sdktest.Restart(func(testing.TB) {
		e.kill()
		e.start()
	}))
	for _, topic := range []string{"search", "filters", "write", "scan", "list", "refuse", "together", "processes"} {
		options = append(options, sdktest.Without(topic, "TestConformance has it"))
	}
	sdktest.Stage(t, Stage(), e.json(), options...)
}

// json returns the config of a stage for the server.
func (e *milvusEngine) json() string {
	return fmt.Sprintf(`{"address": %q, "index": "FLAT", "retry_time": "20s"}`, e.address)
}

// Environment variables of TestConformanceElsewhere: the config of a stage as JSON, whether the
// server has no sparse vectors, and whether its scores depend on the number of queries in a call.
const (
	configVariable    = "RACFLOW_MILVUS_CONFIG"
	denseOnlyVariable = "RACFLOW_MILVUS_DENSE_ONLY"
	roundingVariable  = "RACFLOW_MILVUS_ROUNDING"
)

// ready returns the config for a server that was started elsewhere, once it answers: it may accept connections
// earlier.
func ready(t *testing.T) string {
	t.Helper()
	config := os.Getenv(configVariable)
	if config == "" {
		t.Skipf("%s is not set", configVariable)
	}
	var err error
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if err = answers(t, config); err == nil {
			return config
		}
	}
	t.Fatalf("the server does not answer: %v", err)
	return ""
}

// answers makes a collection, writes, searches and drops it.
func answers(t *testing.T, config string) error {
	opened, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
	must.Do(t, err)
	s := opened.(*store)
	defer s.Close()
	_, err = s.Open(t.Context(), "ready", sdk.Schema{Dimension: 2})
	if err == nil {
		err = s.Put(t.Context(), "ready", []sdk.Entry{{ID: "a", Vector: []float32{1, 0}}})
	}
	if err == nil {
		err = s.Commit(t.Context(), "ready", nil)
	}
	if err == nil {
		_, err = s.Search(t.Context(), "ready", sdk.Search{Mode: sdk.ModeDense, NumCandidates: 1}, []sdk.Query{{Vector: []float32{1, 0}}})
	}
	return errors.Join(err, s.Drop(t.Context(), "ready"))
}

// TestConformanceElsewhere runs the suite against a running server, as .ci/milvus-others does with several.
func TestConformanceElsewhere(t *testing.T) {
	config, options := ready(t), append(unpromised(), sdktest.Parallel())
	if os.Getenv(denseOnlyVariable) != "" {
		options = append(options, sdktest.DenseOnly("the server has no sparse vectors"))
	}
	if os.Getenv(roundingVariable) != "" {
		options = append(options,
			sdktest.DenseOnly("its BM25 does not count the words of all entries"),
			sdktest.Without("together/many searches", "the last digit of a score depends on the other queries of a call"))
	}
	sdktest.Stage(t, Stage(), config, options...)
}

// TestLoginElsewhere logs in with a wrong password, and without TLS, on a server with users.
func TestLoginElsewhere(t *testing.T) {
	var config map[string]any
	if err := json.Unmarshal([]byte(ready(t)), &config); err != nil || config["user"] == nil {
		t.Skipf("%s has no user", configVariable)
	}
	try := func(changes map[string]any) error {
		changed := maps.Clone(config)
		maps.Copy(changed, changes)
		text, err := json.Marshal(changed)
		must.Do(t, err)
		s, err := Stage().Open(t.Context(), sdk.Setup{}, text)
		must.Do(t, err)
		defer s.(*store).Close()
		_, err = s.(sdk.Store).Open(t.Context(), "login", sdk.Schema{Dimension: 2})
		return err
	}
	if err := try(nil); err != nil {
		t.Errorf("the right password gives %v", err)
	}
	for what, changes := range map[string]map[string]any{
		"a wrong password": {"password": "hunter2"},
		"a wrong token":    {"user": nil, "password": nil, "token": "hunter2"},
	} {
		err := try(changes)
		if sdk.CodeOf(err) != sdk.CodeInvalid || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s gives %v", what, err)
		}
	}
	start := time.Now()
	err := try(map[string]any{"ca": nil, "connect_timeout": "2s"})
	if err == nil || !strings.Contains(err.Error(), "certificate") || time.Since(start) > 5*time.Second {
		t.Errorf("a certificate of an unknown authority gives %v", err)
	}
}
