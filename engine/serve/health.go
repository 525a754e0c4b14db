package serve

import (
	"encoding/json"
	"net/http"
	"sync"
)

// health registers what says how the server does.
func (s *Server) health() {
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { writeStatus(w, http.StatusOK, "ok") })
	s.mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-s.ending:
			writeStatus(w, http.StatusServiceUnavailable, "ending")
			return
		default:
		}
		for _, p := range s.pipelines() {
			if !p.Status().Ready {
				writeStatus(w, http.StatusServiceUnavailable, "starting")
				return
			}
		}
		writeStatus(w, http.StatusOK, "ready")
	})
	content := sync.OnceValues(func() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) })
	s.mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		text, err := content()
		if err != nil {
			panic(err) // the guard reports it
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(text) // the client may be gone
	})
}

func writeStatus(w http.ResponseWriter, code int, status string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(`{"status":"` + status + "\"}\n")) // the client may be gone
}
