import { HttpClient } from "./http";
import type { Reservation, ReservationId, StationId } from "./types";

/** Asks for the best bike of a station. */
export function reserveBike(client: HttpClient, station: StationId, rider: string): Promise<Reservation> {
  return client.post<Reservation>(`/stations/${station}/reservations`, { rider });
}

/** Six more minutes, once. */
export function extendHold(client: HttpClient, reservation: ReservationId): Promise<Reservation> {
  return client.post<Reservation>(`/reservations/${reservation}/extension`);
}

export function cancelReservation(client: HttpClient, reservation: ReservationId): Promise<{ bike: string }> {
  return client.delete(`/reservations/${reservation}`);
}

/** Calls `show` every second with what is left of a hold, and once with zero. */
export function countdown(endsAt: number, now: () => number, show: (seconds: number) => void): () => void {
  const step = () => {
    const left = Math.max(0, Math.ceil(endsAt - now()));
    show(left);
    if (left === 0) {
      stop();
    }
  };
  const timer = setInterval(step, 1000);
  const stop = () => clearInterval(timer);
  step();
  return stop;
}
