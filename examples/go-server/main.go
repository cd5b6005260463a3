// Tokens for the users of an app, and webhooks. PARLEY_SECRET_KEY=sk_live_… WEBHOOK_SECRET=whsec_… PORT=3003 go run .
package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	secretKey     = os.Getenv("PARLEY_SECRET_KEY")
	webhookKey, _ = base64.StdEncoding.DecodeString(strings.TrimPrefix(os.Getenv("WEBHOOK_SECRET"), "whsec_"))
	passwords     = map[string]string{"alice": "wonderland", "bob": "builder"} // in place of your own accounts
	sessions      sync.Map
)

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// userToken makes a JWT: HS256 with the whole secret key, whose middle part is the key id.
func userToken(userID string, life time.Duration) string {
	encode, now := base64.RawURLEncoding.EncodeToString, time.Now()
	header, _ := json.Marshal(map[string]string{"alg": "HS256", "typ": "JWT", "kid": strings.Split(secretKey, "_")[2]})
	claims, _ := json.Marshal(map[string]any{"sub": userID, "iat": now.Unix(), "exp": now.Add(life).Unix()})
	signed := encode(header) + "." + encode(claims)
	return signed + "." + encode(sign([]byte(secretKey), signed))
}

func verified(h http.Header, body []byte) bool { // Standard Webhooks: HMAC-SHA256 over id.timestamp.body
	var stamp int64
	if fmt.Sscan(h.Get("webhook-timestamp"), &stamp); time.Since(time.Unix(stamp, 0)).Abs() > 5*time.Minute {
		return false
	}
	text := h.Get("webhook-id") + "." + h.Get("webhook-timestamp") + "." + string(body)
	wanted := []byte("v1," + base64.StdEncoding.EncodeToString(sign(webhookKey, text)))
	ours := func(given string) bool { return hmac.Equal([]byte(given), wanted) }
	return slices.ContainsFunc(strings.Fields(h.Get("webhook-signature")), ours)
}

func webhooks(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	var event struct {
		ID, Type string
		Data     struct {
			Message struct{ SenderID, Text string }
		}
	}
	if err != nil || !verified(r.Header, body) || json.Unmarshal(body, &event) != nil {
		http.Error(w, "not from Parley", http.StatusBadRequest)
		return
	}
	// Every attempt of an event has the same ID: look for it in your database before you work on it.
	if event.Type == "message.created" {
		fmt.Println(event.Type, event.Data.Message.SenderID+":", event.Data.Message.Text)
	}
}

func signIn(w http.ResponseWriter, r *http.Request) {
	var given struct{ User, Password string }
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&given)
	if known, ok := passwords[given.User]; err != nil || !ok || known != given.Password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	session := "session=" + rand.Text()
	sessions.Store(session, given.User)
	w.Header().Set("Set-Cookie", session+"; Path=/; HttpOnly; SameSite=Lax")
}

func chatToken(w http.ResponseWriter, r *http.Request) {
	cookie, _ := r.Cookie("session")
	if user, ok := sessions.Load(cookie.String()); ok {
		io.WriteString(w, userToken(user.(string), time.Hour))
	} else {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func main() {
	http.HandleFunc("POST /sign-in", signIn)
	http.HandleFunc("GET /chat-token", chatToken)
	http.HandleFunc("POST /webhooks", webhooks)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	fmt.Println("listening on http://127.0.0.1:"+os.Getenv("PORT"), err)
	panic(http.Serve(listener, nil))
}
