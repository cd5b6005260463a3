// A conversation by the client that openapi-generator generates. Arguments: the service and a secret key.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"conversation/parley"
)

func must[T any](value T, response any, err error) T {
	if err != nil {
		panic(fmt.Sprint(err, " ", response))
	}
	return value
}

func main() {
	url, secretKey := os.Args[1], os.Args[2]
	configuration := parley.NewConfiguration()
	configuration.Servers = parley.ServerConfigurations{{URL: url}}
	client := parley.NewAPIClient(configuration)
	as := func(credential string) context.Context {
		return context.WithValue(context.Background(), parley.ContextAccessToken, credential)
	}
	server := as(secretKey)

	user := func(id string) context.Context {
		body := parley.NewUsersUpsertRequest()
		body.SetName(strings.ToUpper(id))
		must(client.UsersAPI.UsersUpsert(server, id).UsersUpsertRequest(*body).Execute())
		token := must(client.TokensAPI.TokensCreate(server).TokensCreateRequest(*parley.NewTokensCreateRequest(id)).Execute())
		return as(token.Token)
	}
	alice, bob := user("go-alice"), user("go-bob")

	group := parley.NewConversationsCreateRequest("group", []string{"go-bob"})
	group.SetName("Team")
	create := func() *parley.Conversation {
		return must(client.ConversationsAPI.ConversationsCreate(alice).ConversationsCreateRequest(*group).IdempotencyKey("go:1").Execute())
	}
	conversation := create()
	if create().Id != conversation.Id {
		panic("the key was not honoured")
	}

	send := func(by context.Context, clientMsgId string, text string, replyTo *string) *parley.Message {
		body := parley.NewMessagesSendRequest()
		body.SetClientMsgId(clientMsgId)
		body.SetText(text)
		body.ReplyTo = replyTo
		return must(client.MessagesAPI.MessagesSend(by, conversation.Id).MessagesSendRequest(*body).Execute()).Message
	}
	one := send(alice, "1", "one", nil)
	two := send(bob, "2", "two", &one.Id)
	if one.ReplyTo.Get() != nil || *two.ReplyTo.Get() != one.Id {
		panic("wrong replies")
	}

	change := parley.NewMessagesUpdateRequest(1)
	change.SetText("edited")
	_, _, err := client.MessagesAPI.MessagesUpdate(bob, one.Id).MessagesUpdateRequest(*change).Execute()
	refused := err.(*parley.GenericOpenAPIError).Model().(parley.Error)
	edited := must(client.MessagesAPI.MessagesUpdate(alice, one.Id).MessagesUpdateRequest(*change).Execute())
	deleted := must(client.MessagesAPI.MessagesDelete(bob, two.Id).Execute())
	if deleted.Text.Get() != nil || edited.EditedAt.Get() == nil {
		panic("wrong changes")
	}

	messages := [][]any{}
	for _, one := range must(client.MessagesAPI.MessagesList(alice, conversation.Id).Execute()).Data {
		if one.Tombstone != nil {
			messages = append(messages, []any{"Tombstone", one.Tombstone.Text.Get()})
		} else {
			messages = append(messages, []any{"Message", one.Message.Text.Get()})
		}
	}
	events := [][]any{}
	for _, one := range must(client.SyncAndEventsAPI.EventsList(bob, conversation.Id).Execute()).Data {
		switch {
		case one.ConversationCreatedEvent != nil:
			events = append(events, []any{"ConversationCreatedEvent", one.ConversationCreatedEvent.Type})
		case one.MessageNewEvent != nil:
			events = append(events, []any{"MessageNewEvent", one.MessageNewEvent.Type})
		case one.MessageUpdatedEvent != nil:
			events = append(events, []any{"MessageUpdatedEvent", one.MessageUpdatedEvent.Type})
		case one.MessageDeletedEvent != nil:
			events = append(events, []any{"MessageDeletedEvent", one.MessageDeletedEvent.Type})
		}
	}
	text, err := json.Marshal(map[string]any{
		"refused": refused.Error.Code, "version": edited.Version, "messages": messages, "events": events,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
