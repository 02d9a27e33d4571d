// @ts-check
// A short sound, made by the browser: nothing is loaded for it.

/** @type {AudioContext|null} */
let audio = null;

/** Three rising notes, or nothing where none can be played. */
export async function chime() {
  audio ||= new AudioContext();
  for (const [i, pitch] of [784, 988, 1319].entries()) {
    const tone = audio.createOscillator(), volume = audio.createGain(), at = audio.currentTime + i * 0.09;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.12, at);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.25);
    tone.connect(volume).connect(audio.destination);
    tone.start(at);
    tone.stop(at + 0.25);
  }
}
