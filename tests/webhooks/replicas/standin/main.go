// Standin replaces curl and openssl where they are not installed, depending on the name by which it is called. It supports the features
// that docs/guides/webhook-senders.md, webhook-signatures.md and config/samples/fleet use.
package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	do := map[string]func([]string) error{"curl": curl, "openssl": openssl}[filepath.Base(os.Args[0])]
	if err := do(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, os.Args[0]+":", err)
		os.Exit(22)
	}
}

// curl supports -fsS -H HEADER... -d BODY URL, or -sS -m SECONDS -o FILE -w %{http_code}.
func curl(args []string) error {
	header, url, body := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "", ""
	fails, output := false, ""
	client := &http.Client{}
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-fsS":
			fails = true
		case "-sS":
		case "-m":
			i++
			seconds, err := strconv.Atoi(args[i])
			if err != nil {
				return err
			}
			client.Timeout = time.Duration(seconds) * time.Second
		case "-o":
			i++
			output = args[i]
		case "-w":
			i++
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ":")
			header.Set(name, strings.TrimSpace(value))
		case "-d":
			i++
			body = args[i]
		default:
			if url != "" || strings.HasPrefix(args[i], "-") {
				return fmt.Errorf("%s is not supported", args[i])
			}
			url = args[i]
		}
	}
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body)) //nolint:gosec,noctx // the URL is that of the docs, and it ends with the process
	if err != nil {
		return err
	}
	req.Header = header
	response, err := client.Do(req) //nolint:gosec // the same URL
	if err != nil {
		if output != "" {
			fmt.Print("000")
		}
		return err
	}
	defer response.Body.Close() //nolint:errcheck // the body was read
	if fails && response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the requested URL returned error: %d", response.StatusCode)
	}
	if output == "" {
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	}
	text, err := io.ReadAll(response.Body)
	fmt.Print(response.StatusCode)
	return errors.Join(err, os.WriteFile(output, text, 0o600)) //nolint:gosec // the file that the caller names
}

// openssl supports dgst -sha256 -hmac KEY, or -mac HMAC -macopt hexkey:KEY -binary.
func openssl(args []string) error {
	var key []byte
	isBinary := len(args) == 7
	switch {
	case len(args) == 4 && slices.Equal(args[:3], []string{"dgst", "-sha256", "-hmac"}):
		key = []byte(args[3])
	case isBinary && slices.Equal(slices.Delete(slices.Clone(args), 5, 6), []string{"dgst", "-sha256", "-mac", "HMAC", "-macopt", "-binary"}):
		var err error
		if key, err = hex.DecodeString(strings.TrimPrefix(args[5], "hexkey:")); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%q is not supported", args)
	}
	mac := hmac.New(sha256.New, key)
	if _, err := io.Copy(mac, os.Stdin); err != nil {
		return err
	}
	if isBinary {
		_, err := os.Stdout.Write(mac.Sum(nil))
		return err
	}
	_, err := fmt.Printf("SHA2-256(stdin)= %x\n", mac.Sum(nil))
	return err
}
