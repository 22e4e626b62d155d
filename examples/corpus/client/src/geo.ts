import type { Place } from "./types";

const EARTH_METRES = 6_371_000;

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}

/** Metres between two places on a sphere. */
export function distance(from: Place, to: Place): number {
  const north = radians(to.latitude - from.latitude);
  const east = radians(to.longitude - from.longitude);
  const a =
    Math.sin(north / 2) ** 2 + Math.cos(radians(from.latitude)) * Math.cos(radians(to.latitude)) * Math.sin(east / 2) ** 2;
  return 2 * EARTH_METRES * Math.asin(Math.sqrt(a));
}
