// @ts-check
// The pages of shoppers: the storefront, and a campaign's page.
import { html, render } from "../lib/html.js";
import { follow } from "../lib/clock.js";
import { speak, t } from "../lib/text.js";
import { campaignOf } from "./campaign.js";
import { Orders, useOrders } from "./orders.js";
import { Header } from "./parts.js";
import { pressOf } from "./press.js";
import { page } from "./user.js";
import { draw, SaleView } from "./view.js";

const campaign = page.campaign && campaignOf(page.campaign), press = campaign && pressOf(campaign);

// The storefront is loaded where it is shown, a draw where there is one, the rain where it falls.
const Home = campaign ? null : (await import("./home.js")).HomeView;
if (page.campaign?.gate?.room?.mode === "lottery") draw.view = (await import("./lottery.js")).Lottery;
const View = campaign && (page.campaign.kind === "redpacket" ? (await import("./rain.js")).RainView : SaleView);

function App() {
  useOrders(press);
  const c = campaign?.c.value;
  // Who waits in another tab sees there that their turn has come.
  const turn = press?.place.value?.state === "admitted" && press.held() === 0;
  document.title = c ? (turn ? t("turn.now") + " " : "") + c.title : t("store.title") + " · dibs";
  return html`<${Header} />
    ${!c ? html`<${Home} />` : html`<${View} campaign=${campaign} press=${press} />`}
    <${Orders} />`;
}

follow();
await speak("shop");
const app = /** @type {HTMLElement} */ (document.getElementById("app"));
app.textContent = "";
render(html`<${App} />`, app);
