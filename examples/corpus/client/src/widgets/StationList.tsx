import { nearestWithBike, sortByDistance } from "../stations";
import type { Place, PlacedStation } from "../types";

interface Props {
  stations: PlacedStation[];
  here: Place;
  onReserve: (station: PlacedStation) => void;
}

/** Stations, nearest first; the first that has a bike is marked. */
export function StationList({ stations, here, onReserve }: Props) {
  const best = nearestWithBike(stations, here);
  return (
    <ul className="stations">
      {sortByDistance(stations, here).map((station) => (
        <li key={station.station} className={station === best ? "best" : undefined}>
          <span>{station.name}</span>
          <button disabled={station.free === 0} onClick={() => onReserve(station)}>
            {station.free} of {station.docks}
          </button>
        </li>
      ))}
    </ul>
  );
}
