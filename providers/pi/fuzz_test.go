package pi

import (
	"testing"

	"github.com/pintle/pintle/providers/providertest"
)

func FuzzFold(f *testing.F) { providertest.Fuzz(f, Provider(), spoken(f)) }
