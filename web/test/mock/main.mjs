// `npm run mock`: the story on http://127.0.0.1:4317/. MOCK_DISKS, MOCK_ROLE and MOCK_EMPTY
// change it.
import { Mock } from "./server.mjs";

const mock = new Mock({
  port: Number(process.env.MOCK_PORT ?? 4317),
  role: process.env.MOCK_ROLE ?? "operator",
  disks: Number(process.env.MOCK_DISKS ?? 60),
  empty: process.env.MOCK_EMPTY === "1",
});
await mock.start();
console.log(`${mock.url} (log in with ${mock.url}#link=good)`);
