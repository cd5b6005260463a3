// The token server is reached through the page's own origin, so that its cookie works.
const target = process.env.TOKEN_SERVER ?? 'http://127.0.0.1:3000';
const proxy = { '/sign-in': target, '/chat-token': target };

export default { server: { proxy }, preview: { proxy } };
