import { distance } from "./geo";
import { HttpClient } from "./http";
import type { Place, PlacedStation, Station } from "./types";

export function listStations(client: HttpClient): Promise<Station[]> {
  return client.get<Station[]>("/stations");
}

/** The nearest station where a bike can be taken, or undefined. */
export function nearestWithBike(stations: PlacedStation[], here: Place): PlacedStation | undefined {
  const open = stations.filter((station) => station.free > 0);
  return sortByDistance(open, here)[0];
}

export function sortByDistance(stations: PlacedStation[], here: Place): PlacedStation[] {
  return [...stations].sort((a, b) => distance(here, a) - distance(here, b));
}
