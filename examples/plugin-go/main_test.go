package main

import (
	"testing"

	"github.com/racflow/racflow/sdk/sdktest"
)

func TestStage(t *testing.T) {
	sdktest.Stage(t, stage(), `{"labels": {"refund": "refund_status", "parcel": "delivery_late"}}`)
}
