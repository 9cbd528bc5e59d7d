package ui

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"
)

// shrink reduces a picture to at most 256 colors, without a visible difference.
func shrink(t testing.TB, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	all := map[color.RGBA]uint8{}
	small := image.NewPaletted(whole.Bounds(), nil)
	for y := whole.Bounds().Min.Y; y < whole.Bounds().Max.Y; y++ {
		for x := whole.Bounds().Min.X; x < whole.Bounds().Max.X; x++ {
			r, g, b, _ := whole.At(x, y).RGBA()
			near := func(c uint32) uint8 { return uint8((c>>8 + 8) / 17 * 17) }
			c := color.RGBA{near(r), near(g), near(b), 255}
			i, ok := all[c]
			if !ok {
				if len(small.Palette) == 256 {
					t.Fatalf("%s has more colors", path)
				}
				i = uint8(len(small.Palette))
				all[c], small.Palette = i, append(small.Palette, c)
			}
			small.SetColorIndex(x, y, i)
		}
	}
	var packed bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&packed, small); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, packed.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
