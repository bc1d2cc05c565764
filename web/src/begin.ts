// Comes before everything else of the page: what the daemon is asked first is on its way while the
// browser reads the rest.
import { logIn } from "./state/session.svelte.ts";

void logIn();
