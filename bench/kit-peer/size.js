export { StreamChat } from 'stream-chat';
export { Channel, ChannelList, Chat, MessageList, Window } from 'stream-chat-react';
