package chat_test

import (
	"testing"

	"github.com/racflow/racflow/plugins/internal/golden"
	"github.com/racflow/racflow/plugins/prompt/chat"
)

func TestGolden(t *testing.T) { golden.Check(t, chat.Stage(), `{}`, "2 8596ab099c1219dd") }
