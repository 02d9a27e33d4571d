// @ts-check
// Falling packets on a canvas. One picture is drawn beforehand and only moved, so that a slow telephone keeps up.

/** @typedef {{x: number, y: number, v: number, size: number, turn: number, spin: number, hit: number}} Packet */

const shape = 96;

function sprite() {
  const c = document.createElement("canvas");
  c.width = c.height = shape * 2;
  const g = /** @type {CanvasRenderingContext2D} */ (c.getContext("2d"));
  g.scale(2, 2);
  g.fillStyle = "#d7301f";
  g.beginPath();
  g.roundRect(18, 6, 60, 84, 8);
  g.fill();
  g.fillStyle = "#b82417";
  g.beginPath();
  g.moveTo(18, 14);
  g.quadraticCurveTo(48, 56, 78, 14);
  g.lineTo(78, 10);
  g.quadraticCurveTo(78, 6, 74, 6);
  g.lineTo(22, 6);
  g.quadraticCurveTo(18, 6, 18, 10);
  g.fill();
  g.fillStyle = "#f7c948";
  g.beginPath();
  g.arc(48, 40, 12, 0, 7);
  g.fill();
  g.fillStyle = "#8a5a00";
  g.font = "bold 15px system-ui, sans-serif";
  g.textAlign = "center";
  g.fillText("¥", 48, 45.5);
  return c;
}

/**
 * Lets packets fall on a canvas until the returned function is called. tapped is called with each packet that a finger
 * meets.
 * @param {HTMLCanvasElement} canvas @param {() => void} tapped
 */
export function fall(canvas, tapped) {
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), picture = sprite();
  /** @type {Packet[]} */
  const packets = [];
  let width = 0, height = 0, last = 0, frame = 0, over = false;
  const size = () => {
    const box = canvas.getBoundingClientRect(), ratio = Math.min(2, devicePixelRatio || 1);
    width = box.width;
    height = box.height;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
  };
  const fresh = (/** @type {Partial<Packet>} */ p = {}) => ({
    x: Math.random() * Math.max(1, width - shape) + shape / 2, y: -shape - Math.random() * height, v: 110 + Math.random() * 150,
    size: 0.65 + Math.random() * 0.45, turn: Math.random() - 0.5, spin: (Math.random() - 0.5) * 1.4, hit: 0, ...p,
  });
  const draw = (/** @type {number} */ at) => {
    if (over) return;
    // After a pause of the tab, nothing leaps.
    const dt = Math.min(0.05, (at - last) / 1000);
    last = at;
    g.clearRect(0, 0, width, height);
    for (const p of packets) {
      p.y += p.v * dt;
      p.turn += p.spin * dt;
      if (p.hit) p.hit += dt;
      if (p.y > height + shape || p.hit > 0.3) Object.assign(p, fresh({ y: -shape }));
      const scale = p.size * (1 + p.hit * 2);
      g.save();
      g.globalAlpha = Math.max(0, 1 - p.hit * 3.3);
      g.translate(p.x, p.y);
      g.rotate(p.turn);
      g.drawImage(picture, (-shape / 2) * scale, (-shape / 2) * scale, shape * scale, shape * scale);
      g.restore();
    }
    frame = requestAnimationFrame(draw);
  };
  const press = (/** @type {PointerEvent} */ e) => {
    const box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top;
    // The one that was drawn last lies on top. A finger is wide.
    const p = packets.findLast((q) => !q.hit && Math.hypot(q.x - x, q.y - y) < (shape / 2) * q.size + 14);
    if (!p) return;
    p.hit = 0.001;
    tapped();
  };
  size();
  const many = Math.max(8, Math.min(24, Math.round(width / 45)));
  for (let i = 0; i < many; i++) packets.push(fresh({ y: Math.random() * height * 1.6 - height }));
  addEventListener("resize", size);
  canvas.addEventListener("pointerdown", press);
  frame = requestAnimationFrame((at) => ((last = at), draw(at)));
  return () => {
    over = true;
    cancelAnimationFrame(frame);
    removeEventListener("resize", size);
    canvas.removeEventListener("pointerdown", press);
    g.clearRect(0, 0, width, height);
  };
}
