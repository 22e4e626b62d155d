/** What the service sends. */

export type StationId = string;
export type ReservationId = string;

export enum BikeState {
  Free = "free",
  Held = "held",
  Riding = "riding",
  OutOfService = "out of service",
}

export interface Station {
  station: StationId;
  name: string;
  docks: number;
  free: number;
}

export interface Reservation {
  reservation: ReservationId;
  bike: string;
  /** Seconds of the service's clock. */
  ends_at: number;
}

export interface Place {
  latitude: number;
  longitude: number;
}

export interface PlacedStation extends Station, Place {}
