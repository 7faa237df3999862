// A certified OpenID Connect provider on loopback that requires PKCE, with pages to log in as anybody.
// node certified_provider.mjs FOLDER_OF_THE_PACKAGE PORT CLIENT_URL SECRET
import { pathToFileURL } from "node:url";

const [folder, port, client, secret] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${folder}/lib/index.js`).href);
const provider = new Provider(`http://localhost:${port}`, {
  clients: [
    {
      client_id: "crosswind",
      client_secret: secret,
      redirect_uris: [`${client}/login/oidc/callback`],
      post_logout_redirect_uris: [`${client}/login`],
    },
  ],
  claims: { openid: ["sub"], profile: ["preferred_username"], groups: ["groups"] },
  pkce: { required: () => true, methods: ["S256"] },
  cookies: { keys: ["not a secret"] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: `subject of ${id}`, preferred_username: id, groups: ["operators"] }),
  }),
});
provider.listen(Number(port), "127.0.0.1");
