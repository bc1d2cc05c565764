import "./begin.ts";
import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import App from "./App.svelte";
import { keepFocus } from "./state/focus.ts";
import { applyTheme } from "./state/theme.svelte.ts";

applyTheme();
const target = document.getElementById("app")!;
mount(App, { target });
keepFocus(target);
