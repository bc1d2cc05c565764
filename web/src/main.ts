import "./begin.ts";
import { mount } from "svelte";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import App from "./App.svelte";
import { applyTheme } from "./state/theme.svelte.ts";

applyTheme();
mount(App, { target: document.getElementById("app")! });
