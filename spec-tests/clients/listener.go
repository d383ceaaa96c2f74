package main

import (
	"encoding/json"
	"io"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/event"
)

func events(out io.Writer) *event.PoolMonitor {
	var lock sync.Mutex
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		lock.Lock()
		defer lock.Unlock()
		line := map[string]any{"at": float64(time.Now().UnixMicro()) / 1e6, "type": e.Type, "address": e.Address}
		line["connectionId"], line["durationMS"], line["reason"] = e.ConnectionID, e.Duration.Seconds()*1000, e.Reason
		line["interruptInUseConnections"], line["options"] = e.Interruption, e.PoolOptions
		if e.Error != nil {
			line["error"] = e.Error.Error()
		}
		json.NewEncoder(out).Encode(line)
	}}
}
