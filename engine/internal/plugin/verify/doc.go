// Package verify runs the conformance suite (package conformance) on a plugin's real program, in any language,
// started by the real host. It adds checks that concern the process: its start, its output, its end, kills,
// concurrent calls, large messages, and memory.
//
// Each stage of the plugin is checked with a config. The file verify.json beside the program, or in the project's
// folder, has the configs by KIND/NAME:
//
//	{
//	  "rerank/mine": {"weight": 0.5},
//	  "sample/asks": {"endpoint": "http://127.0.0.1:8080/v1", "api_key": "$MINE_KEY"},
//	  "store/mine":  {"path": "shelf"},
//	  "without":     {"store/mine: filters/infinity": "the database has no literal for it"},
//	  "dense_only":  "the database has no lexical search",
//	  "network":     ["api.example.com:443"],
//	  "read":        ["models"]
//	}
//
// A secret that begins with $ comes from the environment. "without" skips a check, and gives the reason; "dense_only"
// is for stores. "network", "read" and "write" are what required_plugins allows the plugin. A stage that is not listed
// is checked with its Example. Each required argument then gets its example, its first choice or a word.
//
// Only build.go builds something. The package does not decide what a plugin may do in a run.
package verify
