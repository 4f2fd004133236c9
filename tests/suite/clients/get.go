// Requests the URLs in its standard input concurrently over HTTP/2, and prints for each the SHA-256 of its body. Usage:
// get CERTIFICATE
package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	certificate, err := os.ReadFile(os.Args[1])
	check(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	client := &http.Client{Transport: &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
	}}
	var urls []string
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		urls = append(urls, lines.Text())
	}
	// With a connection, the others begin streams on it. Otherwise each opens a connection, of which most stay unused.
	get(client, urls[len(urls)-1])
	hashes := make([]string, len(urls))
	var group sync.WaitGroup
	for at, url := range urls {
		group.Add(1)
		go func(at int, url string) {
			defer group.Done()
			hashes[at] = get(client, url)
		}(at, url)
	}
	group.Wait()
	for _, hash := range hashes {
		fmt.Println(hash)
	}
}

func get(client *http.Client, url string) string {
	response, err := client.Get(url)
	check(err)
	defer response.Body.Close()
	if response.StatusCode != 200 || response.Proto != "HTTP/2.0" {
		check(fmt.Errorf("%s: %s %s", url, response.Proto, response.Status))
	}
	hash := sha256.New()
	_, err = io.Copy(hash, response.Body)
	check(err)
	return fmt.Sprintf("%x", hash.Sum(nil))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
